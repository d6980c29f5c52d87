from services.executor.app import main

main()
